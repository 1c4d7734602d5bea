/** Shortcuts of one key. They are ignored in text fields, and each user can switch them off. */
import { useEffect, useRef, useSyncExternalStore } from "react"

const storageKey = "spoke.shortcuts"
/** How long the second key of a sequence may take, in milliseconds. */
const sequenceMs = 1_500

const listeners = new Set<() => void>()

const isOn = (): boolean => {
  try {
    return localStorage.getItem(storageKey) !== "off"
  } catch {
    // A browser that keeps nothing has them on.
    return true
  }
}

const listen = (listener: () => void) => {
  listeners.add(listener)
  return () => {
    listeners.delete(listener)
  }
}

const choose = (on: boolean): void => {
  try {
    localStorage.setItem(storageKey, on ? "on" : "off")
  } catch {
    return
  }
  for (const listener of listeners) listener()
}

/** Whether shortcuts are on, and the means to change it. */
export const useShortcutSetting = () => [useSyncExternalStore(listen, isOn), choose] as const

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable ||
    target.closest("input, textarea, select, [role=listbox], [role=menu]") !== null)

/** Something lies over the page, and keys are its own. */
const isCovered = () => document.querySelector("[role=dialog], [role=alertdialog]") !== null

/** By a key, or two keys with a space between them, what they do. */
export const useShortcuts = (actions: Readonly<Record<string, () => void>>): void => {
  const latest = useRef(actions)
  useEffect(() => {
    latest.current = actions
  })
  useEffect(() => {
    let first = ""
    let at = 0
    const onKeyDown = (event: KeyboardEvent) => {
      const { altKey, ctrlKey, defaultPrevented, isComposing, key, metaKey, target, timeStamp } = event
      if (defaultPrevented || isComposing || altKey || ctrlKey || metaKey || key.length !== 1) return
      if (!isOn() || isTyping(target) || isCovered()) return
      const pair = timeStamp - at < sequenceMs ? `${first} ${key}` : key
      const action = latest.current[pair] ?? latest.current[key]
      first = key
      at = timeStamp
      if (action === undefined) return
      event.preventDefault()
      first = ""
      action()
    }
    document.addEventListener("keydown", onKeyDown)
    return () => document.removeEventListener("keydown", onKeyDown)
  }, [])
}
