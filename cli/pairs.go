package cli

import (
	"fmt"
	"strings"
)

// pairs is a flag that may be repeated: key=value. A key given twice is an error.
type pairs map[string]string

func (p *pairs) String() string { return "" }

// Type is shown in help texts.
func (p *pairs) Type() string { return "key=value" }

// Set adds one pair.
func (p *pairs) Set(s string) error {
	key, value, ok := strings.Cut(s, "=")
	if key = strings.TrimSpace(key); !ok || key == "" {
		return fmt.Errorf("%q is not key=value", s)
	}
	if _, twice := (*p)[key]; twice {
		return fmt.Errorf("%s is given twice", key)
	}
	if *p == nil {
		*p = pairs{}
	}
	(*p)[key] = value
	return nil
}
