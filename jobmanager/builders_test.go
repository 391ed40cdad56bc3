package jobmanager

import (
	"context"
	"errors"
	"testing"

	"github.com/weirflow/weir/operator"
)

// twoJobs is a catalog of the jobs a and b.
type twoJobs struct{ operator.Catalog }

func (twoJobs) Entrypoints() []operator.Entrypoint {
	return []operator.Entrypoint{{Name: "a"}, {Name: "b"}}
}

// However many submissions of a job whose builder does not return wait, another job's
// has its turn at once.
func TestBlockedBuilderTakesOneTurn(t *testing.T) {
	t.Parallel()
	b := newBuilders(twoJobs{})
	leave, err := b.enter(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 * buildWidth {
		gone, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("the client left"))
		if _, err := b.enter(gone, "a"); err == nil {
			t.Fatal("two builds of one job")
		}
	}
	other, err := b.enter(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	other()
	leave()
	if leave, err = b.enter(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	leave()
	if len(b.all) != 0 || len(b.of["a"]) != 0 || len(b.of["b"]) != 0 {
		t.Error("a turn was not given back")
	}
}
