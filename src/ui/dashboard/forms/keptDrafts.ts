/**
 * Drafts: unsaved input. A draft survives the page, the window and the session. It is stored in this browser, for the
 * user who typed it, and never contains secrets.
 */
import { useSyncExternalStore } from "react"
import { store, stored, storedKeys, unstore } from "../window/stored.ts"

export interface KeptDraft {
  readonly key: string
  /** Name in the list of drafts. */
  readonly title: string
  /** The page that it was typed on. */
  readonly path: string
  /** The stored values when editing began. */
  readonly base: unknown
  readonly value: unknown
  /** Milliseconds since the epoch. */
  readonly at: number
}

const maxDraftAgeMs = 30 * 86_400_000

const prefixOf = (userId: string) => `spoke.draft.${userId}.`

const listeners = new Set<() => void>()
let lists = new Map<string, ReadonlyArray<KeptDraft>>()

const changed = () => {
  lists = new Map()
  for (const listener of listeners) listener()
}

const draftOf = (text: string | null): KeptDraft | null => {
  try {
    const draft: KeptDraft | null = JSON.parse(text ?? "null")
    return draft
  } catch {
    return null
  }
}

export const findDraft = (userId: string, key: string): KeptDraft | null =>
  draftOf(stored(prefixOf(userId) + key))

export const keepDraft = (userId: string, draft: KeptDraft): void => {
  store(prefixOf(userId) + draft.key, JSON.stringify(draft))
  changed()
}

export const dropDraft = (userId: string, key: string): void => {
  if (stored(prefixOf(userId) + key) === null) return
  unstore(prefixOf(userId) + key)
  changed()
}

const listOf = (userId: string): ReadonlyArray<KeptDraft> => {
  const known = lists.get(userId)
  if (known !== undefined) return known
  const found = storedKeys()
    .filter((name) => name.startsWith(prefixOf(userId)))
    .flatMap((name) => draftOf(stored(name)) ?? [])
  const fresh = found.filter(({ at }) => Date.now() - at < maxDraftAgeMs)
  for (const { key } of found) {
    if (!fresh.some((draft) => draft.key === key)) unstore(prefixOf(userId) + key)
  }
  const sorted = fresh.toSorted((one, other) => one.at - other.at)
  lists.set(userId, sorted)
  return sorted
}

export const dropDrafts = (userId: string): void => {
  for (const { key } of listOf(userId)) unstore(prefixOf(userId) + key)
  changed()
}

const listen = (listener: () => void) => {
  const elsewhere = () => changed()
  listeners.add(listener)
  window.addEventListener("storage", elsewhere)
  return () => {
    listeners.delete(listener)
    window.removeEventListener("storage", elsewhere)
  }
}

/** Of the user, the oldest first. */
export const useKeptDrafts = (userId: string): ReadonlyArray<KeptDraft> =>
  useSyncExternalStore(listen, () => listOf(userId))
