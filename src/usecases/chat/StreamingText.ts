/** A change of a text that comes in pieces. What the next piece may still change is held back. */
export interface StreamingText {
  /** The text that may be shown after `delta`. */
  readonly push: (delta: string) => string
  /** The text held back, after the last piece. */
  readonly flush: () => string
}
