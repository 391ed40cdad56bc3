// Package snapshotmeta is the form that snapshots have on disk: the _metadata file
// of a snapshot and the state file of one subtask.
//
// It owns both codecs, the layout of a job's checkpoint directory and the names in
// it. It must not know when snapshots are taken, retained or deleted, nor what is
// inside a handle's bytes. Both formats are described in docs/formats.md.
//
// The JobManager builds a [Snapshot] and writes it with [Write]; whoever restores or
// inspects reads it with [Open], or record by record with [Walk], and the bytes of its
// handles with [Files.Open], which checks them; [Verify] checks all of them. A task
// writes its state through a [StateFileWriter]: sections one after another, each answered
// by a handle; small ones stay inline in the acknowledgement, and if all are small there
// is no file. What unaligned checkpoints captured of channels lies in sections of such
// files too, written by a [ChannelStateWriter] and read by a [ChannelStateReader].
//
// # Invariants
//
//  1. Equal snapshots have equal bytes.
//  2. Nothing is believed of a _metadata file before its checksum was read: [Open]
//     returns a whole snapshot or an error, and [Walk] reads the file twice. The errors
//     tell apart what is not a snapshot ([ErrNotSnapshot]), cut ([ErrTruncated]),
//     damaged ([ErrCorrupt]) and newer than this program ([ErrNewerVersion]), and say where.
//  3. Every length is compared with its limit before memory is taken for it.
//  4. A state file's name is unique per checkpoint and attempt, so that it is never
//     written twice (DECISIONS 9).
//  5. Handles in a written file are relative to the job's own directory: a snapshot
//     never claims files of another job. A handle made absolute by [Rebase] can be
//     opened but not written.
//
// No goroutines and no locks; writers and readers are for one goroutine. Read
// snapshot.go, then writer.go and reader.go; state_file.go; files.go;
// channel_state.go.
package snapshotmeta
