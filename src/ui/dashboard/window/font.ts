/** The font of the interface: loaded on the first visit while the browser has nothing else to do, used from then on. */
import { store, stored } from "./stored.ts"
import { whenIdle } from "./whenIdle.ts"

const storageKey = "spoke.font"

const use = () => {
  document.documentElement.dataset["font"] = ""
}

/** Applied before the first render. */
export const showFont = (): void => {
  if (stored(storageKey) !== null) return use()
  whenIdle(() => {
    // Without a connection it is loaded on the next visit.
    void document.fonts.load("1em Geist").then(
      () => {
        store(storageKey, "loaded")
        use()
      },
      () => {}
    )
  })
}
