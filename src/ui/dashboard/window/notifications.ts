/** Browser notifications with a sound for messages that arrive while the page is hidden. Off by default. */
import { useEffect, useRef, useSyncExternalStore } from "react"
import { makeListeners } from "../listeners.ts"
import { readStored, store } from "./localStorage.ts"

const storageKey = "spoke.notifications"
const { listen, notify } = makeListeners()

const isOn = (): boolean =>
  readStored(storageKey) === "on" && "Notification" in window && Notification.permission === "granted"

const storeSetting = (on: boolean) => {
  store(storageKey, on ? "on" : "off")
  notify()
}

/** Resolves to false if the browser or the user refuses. */
const setOn = async (on: boolean): Promise<boolean> => {
  if (!on) {
    storeSetting(false)
    return true
  }
  if (!("Notification" in window)) return false
  const allowed = (await Notification.requestPermission()) === "granted"
  storeSetting(allowed)
  return allowed
}

/** Whether notifications are on, and a function that changes it. */
export const useNotificationSetting = () => [useSyncExternalStore(listen, isOn), setOn] as const

/** Plays two short quiet tones. */
const playSound = () => {
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
  const lastCount = useRef<number | undefined>(undefined)
  useEffect(() => {
    const previous = lastCount.current
    lastCount.current = count
    if (count === undefined || previous === undefined || count <= previous) return
    if (!isOn() || document.visibilityState === "visible") return
    try {
      // The tag makes the next notification replace this one.
      const shown = new Notification("Spoke", { body: text(count), tag: "spoke-inbox" })
      shown.onclick = () => {
        window.focus()
        shown.close()
      }
    } catch {
      // Browsers on Android show notifications of service workers only. The sound is still played.
    }
    playSound()
  }, [count, text])
}
