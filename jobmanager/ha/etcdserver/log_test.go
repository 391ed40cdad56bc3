package etcdserver

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"go.uber.org/zap"

	"github.com/weirflow/weir/internal/group"
)

// What etcd would end the process for ends its goroutine, and the first cause is kept.
func TestFatalMessagesEndTheGoroutineAndAreReported(t *testing.T) {
	failed := make(chan error, 1)
	log := quiet(zap.NewNop(), failed)
	for name, say := range map[string]func(){
		"fatal": func() { log.Fatal("failed to save", zap.String("at", "here"), zap.Error(syscall.ENOSPC)) },
		"panic": func() { log.Panic("failed to save", zap.Error(syscall.ENOSPC)) },
	} {
		g := group.New(t.Context(), name)
		for range 2 {
			ended := make(chan error, 1)
			if err := g.GoThen(name, func(context.Context) error { say(); return nil }, func(err error) { ended <- err }); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; !errors.Is(err, group.ErrExited) {
				t.Errorf("%s: the goroutine ended with %v", name, err)
			}
		}
		if err := <-failed; !errors.Is(err, syscall.ENOSPC) || err.Error() != "failed to save: no space left on device" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
