// Package pairs measures a subject against a bare loop that does the same work
// without us, interleaved, and reports the ratio with its interval.
//
// It owns [Sample], [Run] and [Result], and [Main], the command line shared by
// the programs in bench. It must not know what is measured.
//
// A caller writes two functions that each do the work once and return a
// [Sample], mostly by [Wall] or [CPU]. [Run] calls them in turn, alternating who
// goes first, at least the given number of pairs and never less than eleven, and
// takes the median of the pairs' ratios. What cannot be measured in turn is compared by
// [Compare], if its samples are pairs, or by [Medians]. The interval of pairs comes from order
// statistics: no assumption on the distribution, coverage at least 95 %. A bar is
// met when the interval's worse end meets it ([Result.CostAtMost],
// [Result.SpeedAtLeast]).
//
// Invariants:
//
//  1. Ratios are of cost per unit, so subject and bare may do different amounts.
//  2. One warm-up of each side is thrown away.
//
// There are no goroutines and no locks. Read pairs.go first.
package pairs
