package generator

import (
	"errors"
	"fmt"
	"math"

	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/operator"
)

// Options say how many records there are, and how fast.
type Options struct {
	// Rate is the number of records per second of all readers together. With 0 they
	// are made as fast as they are taken.
	Rate float64
	// Records is the number of records in all; 0 means without end.
	Records int64
	// End has the source end after its last record. Else it stays, with nothing to
	// emit, so that checkpoints go on.
	End bool
}

func (o Options) validate() error {
	var faults []error
	if o.Rate < 0 || math.IsNaN(o.Rate) || math.IsInf(o.Rate, 0) {
		faults = append(faults, fmt.Errorf("rate %v is not a number of records per second", o.Rate))
	}
	if o.Records < 0 {
		faults = append(faults, fmt.Errorf("%d records", o.Records))
	}
	if o.End && o.Records == 0 {
		faults = append(faults, errors.New("an end without a number of records"))
	}
	return errors.Join(faults...)
}

// New returns a source of the records that newRecord makes of their numbers.
// newRecord must depend on the number alone.
func New[T any](o Options, newRecord func(n int64) T) flow.Source[T] {
	return &source[T]{options: o, newRecord: newRecord}
}

type source[T any] struct {
	options   Options
	newRecord func(n int64) T
}

// Enumerator implements [flow.Source].
func (s *source[T]) Enumerator() operator.Enumerator {
	return flow.StaticSplits(func(parallelism int) ([][][]byte, error) {
		splits := make([][][]byte, parallelism)
		for i := range splits {
			splits[i] = [][]byte{(&split{index: int64(i), of: int64(parallelism)}).append(nil)}
		}
		return splits, nil
	})
}

// Reader implements [flow.Source].
func (s *source[T]) Reader() flow.Reader[T] {
	return &reader[T]{options: s.options, newRecord: s.newRecord}
}
