package etcdserver

import (
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// quiet lets warnings and errors through, but those that mean nothing here, and turns
// the end of the process, which etcd demands when it cannot start, into a panic that
// Start catches.
func quiet(l *zap.Logger) *zap.Logger {
	return l.Named("etcd").WithOptions(
		zap.IncreaseLevel(zapcore.WarnLevel),
		zap.WithFatalHook(zapcore.WriteThenPanic),
		zap.WrapCore(func(c zapcore.Core) zapcore.Core { return filter{c} }),
	)
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
