/** Secrets that are shown once. Only the user closes their dialog: it stays when the page behind it changes. */
import { createContext, type ReactNode, useContext, useState } from "react"
import { useLeaveWarning } from "../forms/useLeaveWarning.ts"
import { commonTexts } from "../text/commonTexts.ts"
import { useText } from "../text/Language.tsx"
import { Button } from "./Button.tsx"
import { Copyable } from "./Copyable.tsx"
import { Actions, Dialog } from "./Dialog.tsx"

interface OneTimeSecret {
  /** The title of the dialog. */
  readonly title: string
  readonly label: string
  /** Says that the secret is not shown again. */
  readonly help: string
  readonly secret: string
  /** Instructions for the secret. */
  readonly instructions?: ReactNode
}

const ShowSecret = createContext<(secret: OneTimeSecret) => void>(() => undefined)

/** A function that shows a secret. It can be called after its component was unmounted. */
export const useShowSecret = () => useContext(ShowSecret)

/** Shows the secrets of the pages in `children`, one after the other. */
export const OneTimeSecrets = ({ children }: { readonly children: ReactNode }) => {
  const t = useText(commonTexts)
  const [secrets, setSecrets] = useState<ReadonlyArray<OneTimeSecret>>([])
  const [show] = useState(() => (secret: OneTimeSecret) => setSecrets((shown) => [...shown, secret]))
  const close = () => setSecrets((shown) => shown.slice(1))
  useLeaveWarning(secrets.length > 0)
  return (
    <ShowSecret value={show}>
      {children}
      {secrets.slice(0, 1).map(({ help, instructions, label, secret, title }) => (
        <Dialog key={secret} title={title} isOpen onClose={close} wide>
          <p>{help}</p>
          <Copyable label={label} value={secret} />
          {instructions}
          <Actions>
            <Button kind="primary" onClick={close}>
              {t.done}
            </Button>
          </Actions>
        </Dialog>
      ))}
    </ShowSecret>
  )
}
