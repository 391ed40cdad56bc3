// Code generated from data.proto by make generate. DO NOT EDIT.

// Package datapb holds the messages of proto/data.proto, which describes them. It owns
// nothing else, has no goroutines and no locks, and is imported where native types
// are turned into messages and back, nowhere else; internal/tidy says where that is.
package datapb
