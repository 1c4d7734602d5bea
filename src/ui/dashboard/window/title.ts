/** The title of the window: the number of unread conversations, then the page's name. */
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

/** The number of unread conversations, shown on every page. */
export const countInWindow = (count: number): void => {
  waiting = count
  write()
}
