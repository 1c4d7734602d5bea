/** Shortcuts of one key. They are ignored in text fields, and each user can switch them off. */
import { useEffect, useRef, useSyncExternalStore } from "react"
import { makeListeners } from "../listeners.ts"
import { store, stored } from "./stored.ts"

const storageKey = "spoke.shortcuts"
/** How long the second key of a sequence may take, in milliseconds. */
const sequenceMs = 1_500

const { listen, notify } = makeListeners()

const isOn = (): boolean => stored(storageKey) !== "off"

const choose = (on: boolean): void => {
  store(storageKey, on ? "on" : "off")
  notify()
}

/** Whether shortcuts are on, and a function to change it. */
export const useShortcutSetting = () => [useSyncExternalStore(listen, isOn), choose] as const

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable ||
    target.closest("input, textarea, select, [role=listbox], [role=menu]") !== null)

/** A dialog or a menu is open and handles keys itself. */
const isCovered = () => document.querySelector("dialog[open], :popover-open") !== null

/** Actions by a key, or by two keys separated by a space. */
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
