package checkpointdemo

import (
	"fmt"

	"github.com/weirflow/weir/codec"
)

// Tally is what is kept for each key: how many records there were, and the sum of
// their numbers, by which a lost record cannot hide behind a doubled one.
type Tally struct {
	Count int64
	Sum   int64
}

// KeyName is the key of the numbers that leave the remainder i.
func KeyName(i int) string { return fmt.Sprintf("key-%02d", i) }

// Expected is the state after so many records, each counted once.
func Expected(records int64, keys int) map[string]Tally {
	all := make(map[string]Tally)
	for i := range keys {
		k, n := int64(i), int64(keys)
		if k >= records {
			break
		}
		count := (records - k + n - 1) / n
		all[KeyName(i)] = Tally{Count: count, Sum: count*k + n*(count*(count-1)/2)}
	}
	return all
}

// ReadTally decodes an entry of the state [TallyState] of [CountOperator], as it
// stands in a checkpoint.
func ReadTally(key, value []byte) (name string, t Tally, err error) {
	keys, err := codec.ForKey[string]()
	if err != nil {
		return "", t, err
	}
	tallies, err := codec.For[Tally]()
	if err != nil {
		return "", t, err
	}
	if err := keys.Decode(append([]byte(nil), key...), &name); err != nil {
		return "", t, fmt.Errorf("key of a tally: %w", err)
	}
	if err := tallies.GetFixed(value, &t); err != nil {
		return "", t, fmt.Errorf("tally of %q: %w", name, err)
	}
	return name, t, nil
}
