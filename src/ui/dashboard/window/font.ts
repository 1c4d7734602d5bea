/**
 * The font of the dashboard. The first visit loads it while the browser is idle; later visits use it from the start.
 */
import { readStored, store } from "./localStorage.ts"
import { whenIdle } from "./whenIdle.ts"

const storageKey = "spoke.font"

const applyFont = () => {
  document.documentElement.dataset["font"] = ""
}

/** Called before the first render. */
export const applyFontWhenLoaded = (): void => {
  if (readStored(storageKey) !== null) return applyFont()
  whenIdle(() => {
    // Without a connection it is loaded on the next visit.
    void document.fonts.load("1em Geist").then(
      () => {
        store(storageKey, "loaded")
        applyFont()
      },
      () => {}
    )
  })
}
