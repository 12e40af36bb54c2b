/** The time, once a second while the page is seen; what shows ages reads it. */

class Clock {
  now = $state(Date.now());

  constructor() {
    setInterval(() => {
      if (!document.hidden) this.now = Date.now();
    }, 1000);
    document.addEventListener("visibilitychange", () => {
      this.now = Date.now();
    });
  }
}

export const clock = new Clock();
