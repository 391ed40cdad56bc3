package joboption

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseDuration reads a length of time: what Go writes ("1m30s", "250ms"), with or
// without spaces, and also "min" for minutes and "d" for days. A bare number counts
// milliseconds.
func ParseDuration(s string) (time.Duration, error) {
	text := strings.ToLower(strings.ReplaceAll(s, " ", ""))
	text = strings.ReplaceAll(text, "min", "m")
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 64)
		if err != nil || n > math.MaxInt64/int64(24*time.Hour) || n < 0 {
			return 0, fmt.Errorf("%q is not a duration such as 5s, 250ms or 10min", s)
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		text += "ms"
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as 5s, 250ms or 10min", s)
	}
	return d, nil
}

// sizeUnits are powers of 1024, longest names first where one ends in another.
var sizeUnits = []struct {
	name  string
	shift uint
}{{"bytes", 0}, {"kib", 10}, {"mib", 20}, {"gib", 30}, {"kb", 10}, {"mb", 20}, {"gb", 30}, {"k", 10}, {"m", 20}, {"g", 30}, {"b", 0}}

// ParseSize reads a number of bytes: "32kb", "1 mb", "4096". Units are powers of 1024.
func ParseSize(s string) (int64, error) {
	text := strings.ToLower(strings.ReplaceAll(s, " ", ""))
	shift := uint(0)
	for _, u := range sizeUnits {
		if number, ok := strings.CutSuffix(text, u.name); ok {
			text, shift = number, u.shift
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%q is not a size such as 32kb or 1mb", s)
	}
	return n << shift, nil
}

func parseInt(s string) (int, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number", s)
	}
	return int(n), nil
}

func parseBool(s string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", s)
}
