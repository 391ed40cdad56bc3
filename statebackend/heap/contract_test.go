package heap_test

import (
	"testing"

	"github.com/weirflow/weir/statebackend/heap"
	"github.com/weirflow/weir/statebackend/statetest"
)

func open(testing.TB) statetest.Subject {
	pool := heap.NewPagePool(8 << 20)
	return statetest.Subject{
		Factory: heap.NewFactory(pool),
		Leaked: func() string {
			if st := pool.Stats(); st.InUse != 0 {
				return st.String()
			}
			return ""
		},
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	statetest.Run(t, open)
}
