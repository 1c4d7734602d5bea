/** Finds values wherever they stand in a text. */
import type { DetectedValue } from "./DetectedValue.ts"

interface KnownValue {
  readonly kind: string
  readonly value: string
}

/** A value in the sorted list, with the position of the longest other value that it begins with; -1 if there is none. */
interface SortedValue extends KnownValue {
  readonly shorter: number
}

/** Minimum length of a value, in UTF-16 units. Places are compared by as many first. */
const minLength = 3

/** The values in order. */
const sorted = (values: ReadonlyArray<KnownValue>): ReadonlyArray<SortedValue> => {
  const list: Array<SortedValue> = []
  for (const known of values.toSorted((one, other) => (one.value < other.value ? -1 : 1))) {
    let shorter = list.length - 1
    while (shorter >= 0 && !known.value.startsWith(list[shorter]?.value ?? ""))
      shorter = list[shorter]?.shorter ?? -1
    list.push({ ...known, shorter })
  }
  return list
}

export class ValueFinder {
  private readonly values: Array<KnownValue> = []
  private readonly beginnings = new Set<string>()
  private longest = 0
  private list: ReadonlyArray<SortedValue> | null = null

  add(kind: string, value: string): void {
    if (value.length < minLength) return
    this.values.push({ kind, value })
    this.beginnings.add(value.slice(0, minLength))
    this.longest = Math.max(this.longest, value.length)
    this.list = null
  }

  /** The longest value that `text` has at `at`. */
  private at(text: string, at: number, list: ReadonlyArray<SortedValue>): SortedValue | undefined {
    const rest = text.slice(at, at + this.longest)
    let low = 0
    let high = list.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((list[middle]?.value ?? "") <= rest) low = middle + 1
      else high = middle
    }
    // Every value that `rest` begins with is the last one that is not greater, or one that this begins with.
    let found = list[low - 1]
    while (found !== undefined && !rest.startsWith(found.value)) found = list[found.shorter]
    return found
  }

  /** The values in `text`. Of several that begin at one place the longest is found. */
  find(text: string): ReadonlyArray<DetectedValue> {
    if (this.values.length === 0) return []
    this.list ??= sorted(this.values)
    const found: Array<DetectedValue> = []
    for (let at = 0; at <= text.length - minLength;) {
      const value = this.beginnings.has(text.slice(at, at + minLength))
        ? this.at(text, at, this.list)
        : undefined
      if (value !== undefined) found.push({ kind: value.kind, start: at, end: at + value.value.length })
      at += value?.value.length ?? 1
    }
    return found
  }
}
