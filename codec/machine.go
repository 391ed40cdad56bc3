//go:build !(amd64 || arm64 || riscv64 || loong64 || ppc64le || mips64le || wasm)

package codec

// The fixed-size form and the operations on offsets take memory as it lies on
// little-endian machines with 64-bit integers; on others this does not compile.
const _ uint8 = "a little-endian machine with 64-bit integers is needed"
