/** FNV-1a with a final mix, so that similar texts get distant hashes: 32 bits. */
export const hash = (text: string): number => {
  let code = 0x811c9dc5
  for (let place = 0; place < text.length; place++)
    code = Math.imul(code ^ text.charCodeAt(place), 0x01000193)
  code = Math.imul(code ^ (code >>> 15), 0x2c1b3c6d)
  return (code ^ (code >>> 12)) >>> 0
}
