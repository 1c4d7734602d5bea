/** The title of the window: the number of unread conversations, and the page's name. */
let pageName = ""
let unreadCount = 0

const updateTitle = () => {
  const name = pageName === "" ? "Spoke" : `${pageName} · Spoke`
  document.title = unreadCount === 0 ? name : `(${unreadCount}) ${name}`
}

export const setPageName = (name: string): void => {
  pageName = name
  updateTitle()
}

export const setUnreadInTitle = (count: number): void => {
  unreadCount = count
  updateTitle()
}
