/** A menu for removing the page's item, separate from the frequent actions. */
import { Ellipsis } from "lucide-react"
import { useState } from "react"
import { Menu, MenuItem, MenuTrigger, Popover } from "react-aria-components"
import { everywhere } from "../text/everywhere.ts"
import { useText } from "../text/Language.tsx"
import { Button } from "./Button.tsx"
import { Question } from "./Dialog.tsx"
import css from "./MoreMenu.module.css"

interface Props {
  /** Label of the action in the menu and title of the confirmation. */
  readonly title: string
  readonly question: string
  readonly onConfirm: () => Promise<unknown>
}

export const MoreMenu = ({ title, question, onConfirm }: Props) => {
  const t = useText(everywhere)
  const [asking, setAsking] = useState(false)
  return (
    <>
      <MenuTrigger>
        <Button kind="quiet" icon aria-label={t.more}>
          <Ellipsis aria-hidden size={18} />
        </Button>
        <Popover className={css["popover"] ?? ""} placement="bottom end">
          <Menu className={css["menu"] ?? ""} aria-label={t.more}>
            <MenuItem className={css["danger"] ?? ""} onAction={() => setAsking(true)}>
              {title}
            </MenuItem>
          </Menu>
        </Popover>
      </MenuTrigger>
      <Question
        title={title}
        question={question}
        action={t.delete}
        onConfirm={onConfirm}
        isOpen={asking}
        onOpenChange={setAsking}
      />
    </>
  )
}
