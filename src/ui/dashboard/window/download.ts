/** Saves what is at `address` as a file: the page stays. */
export const download = (address: string, name = ""): void => {
  const link = document.createElement("a")
  link.href = address
  link.download = name
  link.click()
}
