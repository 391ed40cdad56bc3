// Code generated from client.proto by make generate. DO NOT EDIT.

// Package clientpb holds the messages of proto/client.proto, which describes them. It owns
// nothing else, has no goroutines and no locks, and is imported where native types
// are turned into messages and back, nowhere else; internal/tidy says where that is.
package clientpb
