// Package deploytest checks what lies in deploy/, which holds no Go.
//
// It owns a test that decodes the manifest strictly into the published API types and
// follows its references: selectors to labels, probes and services to ports, mounts
// to volumes, volumes to claims. It must not know the daemons; that the flags in the
// manifest exist is tested where flags are defined.
//
// No goroutines, no locks. Read manifest_test.go.
package deploytest
