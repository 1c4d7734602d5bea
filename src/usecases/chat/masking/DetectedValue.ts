/** A value in a text, by its first UTF-16 unit and the one after its last. */
export interface DetectedValue {
  readonly kind: string
  readonly start: number
  readonly end: number
}
