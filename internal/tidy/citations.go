package tidy

import (
	"fmt"
	"regexp"
	"strings"
)

const (
	settledPage   = "docs/decisions/settled.md"
	behaviourPage = "docs/behaviour.md"
)

var (
	citesSettled   = regexp.MustCompile(`DECISIONS (\d+)`)
	citesBehaviour = regexp.MustCompile(`behaviour §+\s?(\d+(?:\.\d+)*)`)
	settledItem    = regexp.MustCompile(`(?m)^(\d+)\. `)
	behaviourItem  = regexp.MustCompile(`(?m)^#+ §?(\d+(?:\.\d+)*)`)
	elsewhere      = regexp.MustCompile(`flink-behaviour|cases\.md|limits\.md|\bSTYLE\b`)
)

// Citations checks that what Go code cites can be found in docs: a settled question by
// its number, a rule of behaviour by its section or the section around it.
func Citations(t *Tree) []string {
	settled := numbers(settledItem, t.Texts[settledPage])
	behaviour := numbers(behaviourItem, t.Texts[behaviourPage])
	var bad []string
	for _, f := range t.Go {
		if within(f.Package, "internal/tidy") {
			continue // its tests plant citations
		}
		for i, line := range strings.Split(string(t.Texts[f.Path]), "\n") {
			for _, m := range citesSettled.FindAllStringSubmatch(line, -1) {
				if !settled[m[1]] {
					bad = append(bad, fmt.Sprintf("%s:%d: %s has no number %s", f.Path, i+1, settledPage, m[1]))
				}
			}
			for _, m := range citesBehaviour.FindAllStringSubmatch(line, -1) {
				chapter, _, _ := strings.Cut(m[1], ".")
				if !behaviour[m[1]] && !behaviour[chapter] {
					bad = append(bad, fmt.Sprintf("%s:%d: %s has no section %s", f.Path, i+1, behaviourPage, m[1]))
				}
			}
			if m := elsewhere.FindString(line); m != "" {
				bad = append(bad, fmt.Sprintf("%s:%d: %q is no page of this repository", f.Path, i+1, m))
			}
		}
	}
	return bad
}

// numbers returns what the pattern's group matches in a page.
func numbers(item *regexp.Regexp, page []byte) map[string]bool {
	found := make(map[string]bool)
	for _, m := range item.FindAllSubmatch(page, -1) {
		found[string(m[1])] = true
	}
	return found
}
