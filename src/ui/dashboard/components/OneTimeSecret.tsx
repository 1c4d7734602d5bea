/** A secret that is shown once. */
import type { ReactNode } from "react"
import { commonTexts } from "../text/commonTexts.ts"
import { useText } from "../text/Language.tsx"
import { Button } from "./Button.tsx"
import { Copyable } from "./Copyable.tsx"
import { Actions } from "./Dialog.tsx"

interface Props {
  readonly label: string
  /** Says that the secret is not shown again. */
  readonly help: string
  readonly secret: string
  /** Instructions for the secret. */
  readonly children?: ReactNode
  readonly onClose: () => void
}

export const OneTimeSecret = ({ label, help, secret, children, onClose }: Props) => {
  const t = useText(commonTexts)
  return (
    <>
      <p>{help}</p>
      <Copyable label={label} value={secret} />
      {children}
      <Actions>
        <Button kind="primary" onClick={onClose}>
          {t.done}
        </Button>
      </Actions>
    </>
  )
}
