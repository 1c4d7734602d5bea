/** The title of the window: the page's name, behind what waits to be read. */
let name = ""
let waiting = 0

const write = () => {
  const page = name === "" ? "Spoke" : `${name} · Spoke`
  document.title = waiting === 0 ? page : `(${waiting}) ${page}`
}

export const nameWindow = (page: string): void => {
  name = page
  write()
}

/** How much waits, on whatever page. */
export const countInWindow = (count: number): void => {
  waiting = count
  write()
}
