// Package resource knows which TaskManagers are registered, that they live, and
// which of their slots are free.
//
// It owns the [SlotTable] (registrations, slots and the jobs that wait for some) and
// the [HeartbeatMonitor]. It must not know jobs' graphs, which subtask goes into a
// slot, or how TaskManagers are reached.
//
// The dispatcher tells the table of registrations and broken sessions, and jobs'
// requests; the table says which slots a job got and which TaskManagers are lost.
//
// Invariants:
//
//  1. A slot belongs to at most one job.
//  2. A job gets all the slots that it asks for, or none and a word on what is
//     missing; so two jobs never wait for each other's half.
//  3. One process per TaskManager id: another incarnation replaces the one before,
//     which is lost, and so is the same one when it registers again.
//  4. A job gets slots only of TaskManagers with its code id (DECISIONS 2).
//  5. A TaskManager offers no slots while attempts of an earlier time run on it.
//
// Pure: no goroutine, lock, clock, context or I/O. Read slot_table.go.
package resource
