package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/metrics"
)

// parts are what a role has started, to be stopped in reverse order.
type parts struct {
	stops []func(ctx context.Context) error
}

func (p *parts) add(stop func(ctx context.Context) error) { p.stops = append(p.stops, stop) }

// stopTimeout bounds how long a role may take to end.
const stopTimeout = 20 * time.Second

// stop stops everything; it is for a defer after start, and also for half a start.
func (p *parts) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var errs []error
	for i := len(p.stops) - 1; i >= 0; i-- {
		errs = append(errs, p.stops[i](ctx))
	}
	p.stops = nil
	return errors.Join(errs...)
}

// serveMetrics serves /metrics at an address, or nothing if it is empty, and returns
// the address it got.
func serveMetrics(ctx context.Context, g *group.Group, p *parts, address string, m *metrics.Registry) (string, error) {
	if address == "" {
		return "", nil
	}
	l, err := listen(ctx, "--metrics-listen", address)
	if err != nil {
		return "", err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler())
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 64 << 10}
	err = g.Go("metrics", func(context.Context) error {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve metrics: %w", err)
		}
		return nil
	})
	if err != nil {
		return "", errors.Join(err, l.Close())
	}
	p.add(srv.Shutdown)
	return l.Addr().String(), nil
}
