package wordcount

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func sortedLines(n map[string]int64) []string {
	lines := make([]string, 0, len(n))
	for w, k := range n {
		lines = append(lines, string(appendTotal(nil, Total{w, k})))
	}
	slices.Sort(lines)
	return lines
}

// ReadOutput returns the sorted lines of all files that the job has published in a
// directory.
func ReadOutput(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "part-*"))
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(b)) {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	slices.Sort(lines)
	return lines, nil
}
