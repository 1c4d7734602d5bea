/** The module of simd.wat, assembled by scripts/wat.mjs. */
declare const module: Uint8Array
export default module
