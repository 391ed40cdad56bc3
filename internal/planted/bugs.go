package planted

// Bug names one planted bug.
type Bug string
