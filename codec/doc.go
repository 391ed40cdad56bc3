// Package codec turns Go values into bytes and back.
//
// It owns the encoding of records, keys and state values, the canonical text of
// their schemas, and the hash of an encoded key. It must not know what values
// mean, nor who stores or sends them.
//
// A caller asks once per type, with [For] or, for keys, [ForKey], while a job's
// graph is built: a type that cannot be encoded is an error that names the path
// to the culprit. The codec is compiled by reflection into a table of operations
// on offsets; encoding and decoding then walk the table without reflection.
//
//	c, err := codec.For[Order]()
//	b, err = c.Append(b[:0], &order)
//	err = c.Decode(b, &order)
//
// docs/formats.md describes the bytes.
//
// Invariants:
//
//  1. Equal values have equal bytes (maps are sorted); for keys also the converse,
//     with -0 equal to +0 and all NaNs equal.
//  2. Decoding takes whatever bytes it is given, never panics, and takes no more
//     memory than a constant times their length.
//  3. Decoded strings and byte slices alias the input, which must not change
//     afterwards; everything else is new.
//  4. A codec is immutable and may be used from any number of goroutines.
//
// No goroutines; one cache of compiled types behind a sync.Map. Read codec.go,
// then compile.go.
package codec
