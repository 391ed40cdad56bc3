// Package client asks a cluster's JobManager from Go: submit, list, show, cancel,
// follow.
//
// It owns finding the leader among several addresses and waiting for a job. It
// must not know how the JobManager works inside. Errors are [*rpc.Error] values
// with a code and, where we know one, a hint.
//
//	c, err := client.New([]string{"127.0.0.1:6123"}, client.Options{})
//	…
//	defer c.Close()
//	reply, err := c.Submit(ctx, rpc.SubmitRequest{Entrypoint: "checkpoint-demo"})
//
// Safe for concurrent use; no goroutines of its own. client.mu is a leaf lock.
// Read client.go.
package client
