/** Downloads the content of `address` as a file, without leaving the page. */
export const download = (address: string, name = ""): void => {
  const link = document.createElement("a")
  link.href = address
  link.download = name
  link.click()
}
