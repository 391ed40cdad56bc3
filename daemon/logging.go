package daemon

import (
	"io"
	"os"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/term"
)

// newLogger logs to w: for people if it is a terminal, else one JSON object a line.
func newLogger(w io.Writer) *zap.Logger {
	sink := zapcore.Lock(zapcore.AddSync(w))
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		cfg := zap.NewDevelopmentEncoderConfig()
		cfg.EncodeLevel = zapcore.CapitalColorLevelEncoder
		cfg.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		cfg.CallerKey = zapcore.OmitKey
		return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(cfg), sink, zap.InfoLevel))
	}
	cfg := zap.NewProductionEncoderConfig()
	cfg.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	cfg.TimeKey = "time"
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(cfg), sink, zap.InfoLevel))
}
