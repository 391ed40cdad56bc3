package flow

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes. As a parameter it is written with a unit: "512",
// "1KiB", "4MB".
type Size int64

var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

// ParseSize reads a size.
func ParseSize(s string) (Size, error) {
	number, unit := strings.TrimSpace(s), int64(1)
	for _, u := range sizeUnits {
		if len(number) > len(u.name) && strings.EqualFold(number[len(number)-len(u.name):], u.name) {
			number, unit = strings.TrimSpace(number[:len(number)-len(u.name)]), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is not a size such as 512, 1KiB or 4MB", s)
	}
	return Size(n * unit), nil
}

func (s Size) String() string {
	for i := 3; i >= 0; i-- {
		if u := sizeUnits[i]; s != 0 && int64(s)%u.bytes == 0 {
			return fmt.Sprintf("%d%s", int64(s)/u.bytes, u.name)
		}
	}
	return strconv.FormatInt(int64(s), 10)
}
