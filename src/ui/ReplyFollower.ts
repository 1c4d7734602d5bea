/** Decides where a list of messages is scrolled when its content grows. */

/** Distance in pixels from the end within which the reader is at the end. */
const endDistance = 64

/** Pixels above a message that is at the top of the list. */
const margin = 16

const isAtEnd = ({ clientHeight, scrollHeight, scrollTop }: Element): boolean =>
  scrollHeight - scrollTop - clientHeight < endDistance

/**
 * The end of the list, but no further than to where its last message begins. The message before it, which is the
 * question, stays visible as far as it takes a third of the list.
 */
const startOf = (list: Element, last: Element): number => {
  const top = list.getBoundingClientRect().top - list.scrollTop
  const before = last.previousElementSibling ?? last
  const question = before.getBoundingClientRect().top - top - margin
  return Math.max(question, last.getBoundingClientRect().top - top - list.clientHeight / 3)
}

/** Scrolls with the content until the reader scrolls up. It never scrolls up itself. */
export class ReplyFollower {
  private isFollowing = true
  private wasAtEnd = true
  /** Scroll position after the last update. */
  private scrollTop = 0
  /** Height of the list at the last update. */
  private height = 0
  private count = 0

  /** Scrolls at the next update, wherever the reader is. */
  follow(): void {
    this.isFollowing = true
    this.wasAtEnd = true
    this.scrollTop = 0
  }

  /** Keeps the scroll position at updates. */
  hold(): void {
    this.isFollowing = false
  }

  /** Called after the list was scrolled. */
  scrolled(list: Element): void {
    // The browser itself scrolls when the size of the list changes.
    if (list.clientHeight !== this.height) return
    this.wasAtEnd = isAtEnd(list)
    if (this.wasAtEnd) this.isFollowing = true
    else if (list.scrollTop !== this.scrollTop) this.isFollowing = false
  }

  /** Called after the height of the list has changed. A reader at the end stays there. */
  resized(list: Element): void {
    this.height = list.clientHeight
    if (this.wasAtEnd) list.scrollTop = list.scrollHeight
    this.scrollTop = Math.min(this.scrollTop, list.scrollHeight - list.clientHeight)
  }

  /** Called after the content of `list` has changed. If `keepsStart`, the start of the last of `messages` stays visible. */
  update(list: Element, messages: HTMLCollection, keepsStart: boolean): void {
    this.height = list.clientHeight
    const last = keepsStart ? messages.item(messages.length - 1) : null
    const isNew = messages.length > this.count
    this.count = messages.length
    // The reader's scroll event comes with the next frame, which may be after this update.
    const isScrolledUp = list.scrollTop < this.scrollTop && !isAtEnd(list)
    // The reader of a long message is not taken to the one after it.
    if (isScrolledUp || (last !== null && isNew && !this.wasAtEnd)) this.isFollowing = false
    if (this.isFollowing) {
      const end = list.scrollHeight - list.clientHeight
      list.scrollTop = Math.max(list.scrollTop, last === null ? end : Math.min(end, startOf(list, last)))
      this.scrollTop = list.scrollTop
    }
    this.wasAtEnd = isAtEnd(list)
  }
}
