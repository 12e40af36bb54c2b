/** The browser's tab carries the state of the run in view. */

import type { RunState } from "../api/types";
import { STATE_WORDS, shapeOf } from "../words/states";

const icon = () => document.getElementById("favicon") as HTMLLinkElement | null;

export const tab = {
  show(state: RunState, title: string): void {
    icon()?.setAttribute("href", `/icons/${shapeOf(state)}.svg`);
    document.title = `${STATE_WORDS[state]}: ${title}`;
  },
  rest(title = "binderclip"): void {
    icon()?.setAttribute("href", "/icons/idle.svg");
    document.title = title;
  },
};
