// Package jobmanager is the control plane of a cluster: it admits jobs, gives them
// TaskManagers, and keeps them running until they end.
//
// It owns the set of jobs, the sessions of TaskManagers, and the answers to
// clients. It must not know a job's insides (jobmaster), how bytes travel (rpc's
// implementations), or where its records are kept (ha's implementations).
//
// A daemon makes a [JobManager] of a [Config], calls [JobManager.Start], gives
// [JobManager.Accept] to the server of sessions and the JobManager itself, which
// is an rpc.ClientGateway, to the server of clients. One that does not lead
// answers everything with an error that wraps rpc.ErrNotLeader and names the leader.
//
// Invariants:
//
//  1. Nothing is written for a job but by the leader, guarded by its epoch.
//  2. A live job's name is unique; a request id names one job for ever.
//  3. A job runs only on TaskManagers with its code id (DECISIONS 2).
//  4. When leadership is lost every job is suspended; it writes nothing more.
//
// Goroutines: elector (campaigns, makes and ends terms); while leading dispatcher
// (owns the set of jobs and the table of TaskManagers), one job/<id> per job (see
// jobmaster), and bounded pools for builds and storage. Handlers of sessions and
// clients only post to these loops. No locks but those of the inboxes.
//
// Read job_manager.go, term.go, dispatcher.go, then submit.go.
package jobmanager
