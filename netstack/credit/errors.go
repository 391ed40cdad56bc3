package credit

import "errors"

// What a peer does wrong.
var (
	// ErrNoCredit is returned for data that was sent without credit.
	ErrNoCredit = errors.New("data without credit")
	// ErrTooMuchCredit is returned for credit beyond any sensible bound.
	ErrTooMuchCredit = errors.New("too much credit")
)
