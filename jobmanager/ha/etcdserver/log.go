package etcdserver

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// quiet lets warnings and errors through, but those that mean nothing here. When etcd
// would end the process, in a goroutine of its own in which nobody can catch that, the
// cause is given to failed, and the goroutine ends: its deferred calls run, and nothing
// is written or acknowledged by it any more.
func quiet(l *zap.Logger, failed chan<- error) *zap.Logger {
	return l.Named("etcd").WithOptions(
		zap.IncreaseLevel(zapcore.WarnLevel),
		zap.WithFatalHook(fatal(failed)),
		zap.WithPanicHook(fatal(failed)),
		zap.WrapCore(func(c zapcore.Core) zapcore.Core { return filter{c} }),
	)
}

// fatal reports a message that etcd cannot go on after, and ends its goroutine.
type fatal chan<- error

// OnWrite implements [zapcore.CheckWriteHook]. It must not return.
func (f fatal) OnWrite(ce *zapcore.CheckedEntry, fields []zapcore.Field) {
	err := errors.New(ce.Message)
	for _, field := range fields {
		if cause, ok := field.Interface.(error); ok && field.Type == zapcore.ErrorType {
			err = fmt.Errorf("%s: %w", ce.Message, cause)
		}
	}
	select {
	case f <- err:
	default: // the first one counts
	}
	runtime.Goexit()
}

// meaningless are messages of every start of an etcd that is alone, has no ports and
// no users. The last two are of a new one, which tries to note its version before it
// has written anything.
var meaningless = []string{
	"Running http and grpc server on single port. This is not recommended for production.",
	"simple token is not cryptographically signed",
	"Failed to detect schema version",
	"failed to update storage version",
}

// filter drops what is meaningless.
type filter struct {
	zapcore.Core
}

func (f filter) With(fields []zapcore.Field) zapcore.Core { return filter{f.Core.With(fields)} }

func (f filter) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if slices.Contains(meaningless, e.Message) {
		return ce
	}
	return f.Core.Check(e, ce)
}
