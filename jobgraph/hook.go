package jobgraph

import (
	"strconv"
	"strings"
)

// hookWord begins a line of a canonical text that names a master hook.
const hookWord = "hook "

// HooksOf returns the names of the master hooks in a canonical text, in order.
func HooksOf(text string) (hooks []string) {
	for line := range strings.Lines(text) {
		quoted, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), hookWord)
		if !ok {
			continue
		}
		if name, err := strconv.Unquote(quoted); err == nil {
			hooks = append(hooks, name)
		}
	}
	return hooks
}
