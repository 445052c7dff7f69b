;; SPDX-License-Identifier: MIT
;; See rounds.c.
(let ((kept (make-vector 1000000 nil)) (count 0) (round 0))
  (while t
    (setq round (1+ round))
    (dotimes (_ 8)
      (aset kept count (make-string 10000 (1+ (% count 120))))
      (setq count (1+ count)))
    (dotimes (n 200) (make-string (+ 500 (% (* n 37) 2000)) ?x))
    (let ((i (% (* round 7) count)))
      (princ (format "ROUND %d LIVE %d %s\n" round (* count 10000)
                     (if (string= (aref kept i) (make-string 10000 (1+ (% i 120)))) "OK" "WRONG"))))
    (if (= (% round 10) 0) (garbage-collect))
    (sleep-for 0.02)))
