package codec

import "errors"

// ErrUnsupported is wrapped by [For] and [ForKey] for a type that cannot be encoded;
// the message names the path from the type to what is wrong.
var ErrUnsupported = errors.New("unsupported type")

// ErrCorrupt is wrapped when decoding bytes that no encoder of the type has written.
var ErrCorrupt = errors.New("corrupt encoding")

// What may be wrong with bytes; made once, since decoding is on the record's path.
var (
	errShort     = corrupt("cut short")
	errVarint    = corrupt("bad varint")
	errRange     = corrupt("number out of the type's range")
	errBool      = corrupt("boolean is neither 0 nor 1")
	errFlag      = corrupt("flag is neither 0 nor 1")
	errLength    = corrupt("length exceeds the input")
	errTime      = corrupt("nanoseconds out of range")
	errDuplicate = corrupt("map keys are not in order")
	errTrailing  = corrupt("bytes after the end")
	errFixed     = corrupt("wrong length of a fixed-size value")
)

type corruptError string

func corrupt(what string) error { return corruptError(what) }

func (e corruptError) Error() string { return "corrupt encoding: " + string(e) }

// Is makes every corruptError match [ErrCorrupt].
func (e corruptError) Is(target error) bool { return target == ErrCorrupt }
