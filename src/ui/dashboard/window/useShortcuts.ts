/** Keyboard shortcuts of one key or two. They are ignored in text fields, and users can switch them off. */
import { useEffect, useRef, useSyncExternalStore } from "react"
import { makeListeners } from "../listeners.ts"
import { readStored, store } from "./localStorage.ts"

const storageKey = "spoke.shortcuts"
/** Maximum time between the two keys of a sequence. */
const maxSequenceMs = 1_500

const { listen, notify } = makeListeners()

const isOn = (): boolean => readStored(storageKey) !== "off"

const setOn = (on: boolean): void => {
  store(storageKey, on ? "on" : "off")
  notify()
}

/** Whether shortcuts are on, and a function to change it. */
export const useShortcutSetting = () => [useSyncExternalStore(listen, isOn), setOn] as const

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable ||
    target.closest("input, textarea, select, [role=listbox], [role=menu]") !== null)

/** A dialog or a menu is open and handles keys itself. */
const isOverlayOpen = () => document.querySelector("dialog[open], :popover-open") !== null

/** Registers actions by their key, or by two keys separated by a space. */
export const useShortcuts = (actions: Readonly<Record<string, () => void>>): void => {
  const latestActions = useRef(actions)
  useEffect(() => {
    latestActions.current = actions
  })
  useEffect(() => {
    let firstKey = ""
    let firstKeyTime = 0
    const onKeyDown = (event: KeyboardEvent) => {
      const { altKey, ctrlKey, defaultPrevented, isComposing, key, metaKey, target, timeStamp } = event
      if (defaultPrevented || isComposing || altKey || ctrlKey || metaKey || key.length !== 1) return
      if (!isOn() || isTyping(target) || isOverlayOpen()) return
      const shortcut = timeStamp - firstKeyTime < maxSequenceMs ? `${firstKey} ${key}` : key
      const action = latestActions.current[shortcut] ?? latestActions.current[key]
      firstKey = key
      firstKeyTime = timeStamp
      if (action === undefined) return
      event.preventDefault()
      firstKey = ""
      action()
    }
    document.addEventListener("keydown", onKeyDown)
    return () => document.removeEventListener("keydown", onKeyDown)
  }, [])
}
