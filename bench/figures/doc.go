// Package figures prints what a benchmark reports and nobody judges: a value, its
// unit and what we aim at.
//
// It owns [Figure] and [Main], the command line of programs that report. It must not
// know what is measured. No goroutines, no locks. Read figures.go.
package figures
