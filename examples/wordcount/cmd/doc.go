// Command wordcount is a whole Weir that carries the one job of
// examples/wordcount.
package main
