// Package wire owns the layout of what TaskManagers say to each other: frames on a
// connection, events between elements, and elements in segments.
//
// It must not know connections, channels' states or what an element's payload means.
//
// Frames and events are described by proto/data.proto and encoded here by hand, byte
// for byte as protobuf does. A sender calls an Append function; the payload of a
// [Buffer] frame follows its head without being copied. A receiver asks [IsBuffer],
// then calls [DecodeBuffer] with the frame's first bytes or [DecodeControl] with a
// whole frame of at most [MaxControl] bytes. Elements are our own format
// (docs/formats.md, "Segment and element"): [PutRecord] and [Cut], and [AppendEvent]
// and [DecodeEvent] for events.
//
// # Invariants
//
//  1. Every length is checked against what is there and against a bound before
//     anything is allocated; no input makes a decoder panic.
//  2. Decoders are strict: fields in the order of their numbers, none twice, none
//     unknown. What was decoded encodes to the same meaning again.
//  3. Decoded bytes alias the input, except those of [Failure] and [Hello].
//  4. The head of a Buffer frame has at most [MaxBufferHead] bytes, so that head and
//     a full segment fit in 32,768.
//
// No goroutines, no locks. Read frame.go, then element.go.
package wire
