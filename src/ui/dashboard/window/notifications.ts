/** Notifications of the browser, and a sound, for messages that arrive while the page is hidden; off by default. */
import { useEffect, useRef, useSyncExternalStore } from "react"
import { makeListeners } from "../listeners.ts"
import { store, stored } from "./stored.ts"

const storageKey = "spoke.notifications"
const { listen, notify } = makeListeners()

const isOn = (): boolean =>
  stored(storageKey) === "on" && "Notification" in window && Notification.permission === "granted"

const keep = (on: boolean) => {
  store(storageKey, on ? "on" : "off")
  notify()
}

/** False if the browser or the user refuses. */
const choose = async (on: boolean): Promise<boolean> => {
  if (!on) {
    keep(false)
    return true
  }
  if (!("Notification" in window)) return false
  const allowed = (await Notification.requestPermission()) === "granted"
  keep(allowed)
  return allowed
}

export const useNotificationSetting = () => [useSyncExternalStore(listen, isOn), choose] as const

/** Two short quiet tones. */
const chime = () => {
  const context = new AudioContext()
  const volume = context.createGain()
  volume.gain.setValueAtTime(0.08, context.currentTime)
  volume.gain.exponentialRampToValueAtTime(0.001, context.currentTime + 0.4)
  volume.connect(context.destination)
  for (const [place, pitch] of [660, 880].entries()) {
    const tone = context.createOscillator()
    tone.frequency.value = pitch
    tone.connect(volume)
    tone.start(context.currentTime + place * 0.15)
    tone.stop(context.currentTime + 0.4)
  }
  setTimeout(() => void context.close(), 1_000)
}

/** Notifies when `count`, which is undefined until it is loaded, has increased while the page is hidden. */
export const useNotifications = (count: number | undefined, text: (count: number) => string): void => {
  const before = useRef<number | undefined>(undefined)
  useEffect(() => {
    const last = before.current
    before.current = count
    if (count === undefined || last === undefined || count <= last) return
    if (!isOn() || document.visibilityState === "visible") return
    try {
      // One at a time: the next one replaces it.
      const shown = new Notification("Spoke", { body: text(count), tag: "spoke-inbox" })
      shown.onclick = () => {
        window.focus()
        shown.close()
      }
    } catch {
      // Browsers on Android show none that a page makes by itself. The sound is all there is.
    }
    chime()
  }, [count, text])
}
